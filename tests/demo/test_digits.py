"""The digits of the demo: which are held out, and how a classifier of them is scored."""

from __future__ import annotations

import numpy as np

from sundog.demo.digits import load_images, score_forest


def test_no_held_out_image_is_fitted_on() -> None:
    (images, digits), (unseen, answers) = load_images()
    assert len(images) == len(digits)
    assert len(unseen) == len(answers)
    assert len(images) + len(unseen) == 1797
    assert set(digits.tolist()) == set(answers.tolist()) == set(range(10))
    fitted = {image.tobytes() for image in images}
    assert sum(image.tobytes() in fitted for image in unseen) == 0


def test_a_forest_that_learns_from_shuffled_labels_guesses() -> None:
    (images, digits), (unseen, answers) = load_images()
    shuffled = np.random.default_rng(0).permutation(digits)
    assert score_forest(images, shuffled, unseen, answers) < 0.25
