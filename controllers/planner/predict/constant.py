"""The next value is the last one: planner.md §11.3."""

from controllers.planner.predict.base import Predictor

__all__ = ("ConstantPredictor",)


class ConstantPredictor(Predictor):
    def _append(self, value: float) -> None:
        """The last value is all there is to know."""

    def _predict(self) -> float:
        return self.last
