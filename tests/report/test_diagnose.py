"""What a diagnosis says of groups and of the next steps."""

from dataclasses import replace

from quanet.evaluation.findings import Diagnosis, Finding
from quanet.report.diagnose import summarize_trust
from quanet.workflows.diagnose import Trustworthiness, judge_trust
from tests.report.made_answers import by_product


def judged(severity):
    diagnosis = Diagnosis([Finding("contents", severity, "The texts differ.")])
    return judge_trust(replace(by_product(5), diagnosis=diagnosis), model="model", files=["new.csv"], by=["product"])


def test_the_next_steps_say_what_to_do():
    (plan, label), (refine, correct) = judged("alarm").steps
    assert plan.startswith("quanet label plan model new.csv")
    assert label == "Select the rows to label, and fill in their labels."
    assert refine == "quanet refine model new.csv --labels to-label.csv --by product"
    assert correct == "Correct the estimates with these labels, whatever has changed since training."
    [(_, fine)] = judged("ok").steps
    assert fine == "No problems found: the estimates can be used."


def test_groups_of_one_state_are_not_counted_twice():
    def said(*states):
        class Judged(Trustworthiness):
            states = property(lambda _: counts)

        counts = {state: states.count(state) for state in states}
        return summarize_trust(Judged(judged("ok").shares, ())).answer

    assert said(*["trusted"] * 5).endswith("All 5 groups: trusted.")
    assert said(*["trusted"] * 4, "widened").endswith("5 groups: 4 trusted and 1 widened.")
