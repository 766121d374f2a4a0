"""Small files in the formats that datasets are published in."""

import io
import tarfile
import zipfile

import numpy as np

REVIEWS = {
    "train/neg/0_3": "Bad caf\u00e9.",
    "train/neg/10_1": "Worse.",
    "train/neg/2_2": "Dull.",
    "train/pos/1_9": "Good\u2028film.",
    "train/pos/0_10": "Great.",
    "test/neg/0_1": "Poor.",
    "test/pos/0_7": "Fine.",
}
OTHERS = {"train/unsup/0_0": "Who knows.", "README": "about", "train/neg/urls": "http", "train/labeledBow.feat": "0:1"}


def imdb_archive(reviews=REVIEWS, *, order=1):
    """The archive of IMDB in small, its files in any order."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in [*reviews.items(), *OTHERS.items()][::order]:
            content = text.encode()
            member = tarfile.TarInfo(f"aclImdb/{name}" if name == "README" else f"aclImdb/{name}.txt")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def lines(n, *, positive=0.9):
    """Lines of label, tab, text."""
    return b"".join(b"%d\treview number %d\n" % (i < positive * n, i) for i in range(n))


def vectors(X, y=None):
    """A file of LeQua with vectors."""
    header = ([] if y is None else ["label"]) + [str(i) for i in range(X.shape[1])]
    rows = [([] if y is None else [str(y[i])]) + [repr(value) for value in row] for i, row in enumerate(X.tolist())]
    return "\n".join(",".join(row) for row in [header, *rows]).encode() + b"\n"


def texts(words, y=None):
    """A file of LeQua with raw texts."""
    header = "text\n" if y is None else "label,text\n"
    quoted = ['"{}"'.format(word.replace('"', '""')) for word in words]
    return (header + "".join(f"{'' if y is None else f'{y[i]},'}{word}\n" for i, word in enumerate(quoted))).encode()


def prevalences(table):
    header = ",".join(["id", *(str(i) for i in range(table.shape[1]))])
    return "\n".join([header, *(f"{i}," + ",".join(map(repr, row)) for i, row in enumerate(table.tolist()))]).encode()


def lequa_task(*, dev=3, test=4, k=2, n=5, text=False, train=12, bags=0, seed=0):
    """The three zip files of a task, and all that is in them: (files, contents)."""
    rng = np.random.default_rng(seed)

    def bag(size, labelled=False):
        y = np.arange(size) % k if labelled else None
        if text:
            return texts([f'word{value}, "quoted"\nline' for value in rng.integers(9, size=size)], y)
        return vectors(rng.normal(size=(size, 4)), y)

    public, hidden, gold = {}, {}, {}
    if bags:
        public |= {f"training_samples/{i}.txt": bag(n, labelled=True) for i in range(bags)}
        public["training_prevalences.txt"] = prevalences(np.full((bags, k), 1 / k))
    else:
        public["training_data.txt"] = bag(train, labelled=True)
    public["label_map.txt"] = b"NEG 0\nPOS 1\n"
    public |= {f"dev_samples/{i}.txt": bag(n + i % 2) for i in range(dev)}
    public["dev_prevalences.txt"] = prevalences(rng.dirichlet(np.ones(k), size=dev))
    hidden |= {f"test_samples/{i}.txt": bag(n) for i in range(test)}
    gold["test_prevalences.txt"] = prevalences(rng.dirichlet(np.ones(k), size=test).round(4))
    parts = {"train_dev": public, "test": hidden, "test_prevalences": gold}
    return {part: zipped(files) for part, files in parts.items()}, {**public, **hidden, **gold}


def zipped(files, prefix="T1A/public/"):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(prefix + name, content)
    return buffer.getvalue()
