"""Every reason can be explained in a line, and those of Planner 1.5.1 are spelt as it spells them."""

import pytest

from controllers.planner.propose import DecisionReason, explain
from controllers.planner.propose.reasons import LOAD_STRENGTH

ORIGINAL = """
disabled insufficient_data model_not_ready no_change
no_fpm_data no_traffic_data partner_not_ready predict_failed
scale scale_down scale_down_capped_by_throughput scale_down_refused_consolidation
scale_up scaling_in_progress set_lower_bound worker_count_mismatch
"""


@pytest.mark.parametrize("reason", DecisionReason)
def test_each_has_one_line_of_its_own(reason: DecisionReason) -> None:
    text = explain(reason)
    assert text
    assert "\n" not in text
    assert not text.endswith(".")
    assert [each for each in DecisionReason if explain(each) == text] == [reason]


def test_spelling() -> None:
    ours = {"worker_count_unknown", "fpm_invalid", "prediction_invalid", "pending_taken_back"}
    assert {str(reason) for reason in DecisionReason} == {*ORIGINAL.split(), *ours}


def test_the_stronger_reason_speaks_for_both_roles() -> None:
    assert [str(reason) for reason in LOAD_STRENGTH] == ["scale_up", "scale_down_capped_by_throughput", "scale_down", "no_change"]
