"""Compare one model with a mixture of ten clusters, on handwritten digits at the same ε.

python examples/mixture_of_digits.py
"""

from __future__ import annotations

from importlib import resources
from typing import Any

import sundog
from sundog.demo.digits import load_images, score_forest


def main() -> None:
    # Small handwritten digits with their labels. Every sixth is held out as test data.
    (images, digits), (unseen, answers) = load_images()
    private = {"image": images, "digit": digits}
    schema = sundog.Schema.load(str(resources.files("sundog.demo") / "digits.schema.yaml"))

    # Independent pixels cannot represent shapes, but within a cluster of similar images the marginals of the pixels
    # are the shape. The clusters take a tenth of the budget. All components together cost as much as one, because
    # each image is in one cluster.
    for clusters in (1, 10):
        synth = sundog.Synthesizer(model="independent", clusters=clusters, epsilon=4.0, delta=1e-5, seed=0)
        release = synth.fit(private, schema).release_
        fake = release.sample(len(images), seed=7, as_="arrays")
        read = score_forest(fake["image"], fake["digit"].to_numpy(zero_copy_only=False), unseen, answers)
        print(f"clusters: {clusters:2}   a classifier trained on synthetic digits reads {read:.0%} of the real ones")

    # The certificate lists the charges for the clusters, the pixels and the labels.
    charges = release.certificate.charges
    print("charged for:", ", ".join(charge.purpose for charge in charges))

    # Samples from one cluster, and a sample with a given label, from any cluster.
    print("labels in cluster 3:", release.sample(8, seed=7, where={"cluster": 3}, as_="arrays")["digit"].to_pylist())
    print_image(release.sample(1, seed=7, where={"digit": 3}, as_="arrays")["image"][0])


def print_image(image: Any) -> None:
    for row in image:
        print("   ", "".join("██" if pixel else "  " for pixel in row))


if __name__ == "__main__":
    main()
