"""Cases for `digits.py`: every method, in its default and its other settings."""

from sklearn.naive_bayes import GaussianNB

import quanet as q

FEW = q.UPP(bag_size=40, repeats=30)
TINY = {"device": "cpu", "random_state": 0}
SMALL_TEXT = q.TextClassifier(embedding_size=8)

ANY = [
    q.TrainPrevalence(),
    q.CC(),
    q.PCC(),
    q.ACC(),
    q.PACC(),
    q.PACC(cv=0.4),
    q.PACC(cv=2),
    q.EMQ(),
    q.EMQ(solver="em"),
]
ANY += [q.EMQ(calibration=one) for one in (None, "platt", "temperature", "vector", "nbvs")]
ANY += [q.EMQ(prior="posteriors", calibration=None), q.EMQ(cv=0.4), q.MAPLS(), q.MAPLS(trust=0.5), q.LEIP()]
ANY += [
    q.BBSE(),
    q.BBSE(outputs="soft"),
    q.RLLS(),
    q.RLLS(outputs="hard", alpha=0.1),
    q.Friedman(),
    q.PWK(),
    q.PWK(3, alpha=2),
]
ANY += [
    q.SVMKLD(),
    q.SVMNKLD(),
    q.SVMQ(),
    q.SVMQ(C=10.0),
    q.SVMAE(),
    q.SVMRAE(),
    q.ReadMe(subsets=40),
    q.ReadMe(subsets=4, words=1),
]
ANY += [q.DMy(), q.DMy(bins=(4, 6), divergence="topsoe", cumulative=True), q.EDx(), q.EDx(metric="manhattan"), q.EDy()]
ANY += [
    q.EDy(metric="euclidean"),
    q.CvMy(),
    q.KMM(),
    q.KMM(gamma=0.5),
    q.MatchingX(),
    q.Matching(representation=q.Distances()),
]
ANY += [q.KDEyML(), q.KDEyML(bandwidth=0.05), q.KDEyCS(), q.KDEyHD(trials=300)]
ANY += [q.Matching(representation=q.Moments(2), divergence="l2"), q.Matching(representation=q.GaussianKernel())]
ANY += [q.Matching(representation=q.Labels(), divergence="likelihood")]
ANY += [q.Matching(representation=q.FourierFeatures(50), divergence="l2")]
ANY += [q.Matching(representation=q.Histogram((4, 6)), divergence="jensen-shannon"), q.Matching(divergence="topsoe")]
ANY += [q.Matching(), q.RUN(), q.RUN(tau=10.0), q.Tikhonov(), q.Tikhonov(tau=0.1)]
ANY += [q.OneVsRest(q.EMQ()), q.OneVsRest(q.SVMQ()), q.OneVsRest(q.HDy()), q.OneVsRest(q.T50()), q.OneVsRest(q.DyS())]
ANY += [q.Median(q.PCC(), {"classifier": [None, GaussianNB()]}), q.Ensemble(q.PACC(), size=6, least=3)]
ANY += [q.Ensemble(q.CC(), size=6, policy=one, kept=2) for one in ("prevalence", "distribution", "accuracy")]
ANY += [q.GridSearchQ(q.SVMNKLD(), {"C": [0.1, 10.0]}, protocol=FEW)]
ANY += [q.GridSearchQ(q.EMQ(), {"calibration": [None, "bcts"], "classifier": [None, GaussianNB()]}, protocol=FEW)]
ANY += [q.AutoQuantifier([q.TrainPrevalence(), q.CC(), q.PACC(), q.EMQ()], [None, GaussianNB()], protocol=FEW)]
TWO = [
    q.HDy(),
    q.DyS(),
    q.DyS(bins=8, divergence="hellinger"),
    q.SMM(),
    q.HDx(),
    q.SORD(),
    q.QUANTy(),
    q.CDE(),
    q.DeBias(),
]
TWO += [q.T50(), q.MAX(), q.X(), q.TAC(), q.TAC(threshold=0.3), q.MS(), q.MS2(), q.MS(cv=0.4), q.MS(positive="b")]
ORDERED = [q.OACC(), q.OACC(strength=0.1), q.OPACC(), q.OEMQ(), q.ODMy(), q.ODMy(bins=(4, 6), strength=1.0)]
ORDERED += [q.FrankHall(q.PACC()), q.FrankHall(q.CC()), q.RUN(tau=10.0), q.Tikhonov(tau=0.1)]
NETWORKS = [q.QuaNet(cv=3), q.QuaNet(GaussianNB(), cv=0.4)]  # without the paper's network: minutes for an epoch
NETWORKS += [q.DeepSets(cv=3, max_epochs=2, features=8, **TINY)]
NETWORKS += [
    q.DeepSets(cv=3, max_epochs=1, pooling="max", loss="ae", **TINY),
    q.GMNet(cv=3, max_epochs=2, gaussians=8, **TINY),
]
NETWORKS += [q.HistNetQ(cv=3, max_epochs=2, **TINY)]
TEXTS = [
    q.TrainPrevalence(),
    q.CC(SMALL_TEXT),
    q.ACC(SMALL_TEXT, cv=3),
    q.EMQ(),
    q.PACC(SMALL_TEXT),
    q.DyS(SMALL_TEXT),
    q.KDEyML(SMALL_TEXT),
]
TEXTS += [
    q.ReadMe(subsets=40),
    q.SVMKLD(),
    q.EDx(),
    q.KMM(),
    q.HDx(),
    q.MatchingX(),
    q.PWK(),
    q.MS(SMALL_TEXT, cv=2),
    q.OneVsRest(q.PACC(SMALL_TEXT, cv=2)),
]
TEXTS += [q.EMQ(q.StackedClassifier([SMALL_TEXT, q.TextClassifier(1.0, views=("words",), embedding_size=4)]), cv=2)]
TEXTS += [
    q.AutoQuantifier([q.CC(), q.EMQ()], [SMALL_TEXT], protocol=FEW),
    q.QuaNet(SMALL_TEXT, cv=2),
]
