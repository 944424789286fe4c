"""Why clusters? The same model at the same ε, once for all digits and once for each of ten clusters.

python examples/mixture_of_digits.py
"""

from __future__ import annotations

from importlib import resources
from typing import Any

import sundog
from sundog.demo.digits import load_images, score_forest


def main() -> None:
    # Small handwritten digits, each with its label; every sixth is kept back to see what a release is worth.
    (images, digits), (unseen, answers) = load_images()
    private = {"image": images, "digit": digits}
    schema = sundog.Schema.load(str(resources.files("sundog.demo") / "digits.schema.yaml"))

    # Independent pixels know nothing of shapes. In clusters of similar images they need not: what a pixel is like in a
    # cluster is what the shape is. Clusters are found with a tenth of the budget; the components then cost as much as
    # one, since each image is in one cluster.
    for clusters in (1, 10):
        synth = sundog.Synthesizer(model="independent", clusters=clusters, epsilon=4.0, delta=1e-5, seed=0)
        release = synth.fit(private, schema).release_
        fake = release.sample(len(images), seed=7, as_="arrays")
        read = score_forest(fake["image"], fake["digit"].to_numpy(zero_copy_only=False), unseen, answers)
        print(f"clusters: {clusters:2}   a classifier that saw synthetic digits only reads {read:.0%} of the real ones")

    # The certificate says what was spent on clusters, and what on pixels and labels.
    charges = release.certificate.charges
    print("charged for:", ", ".join(charge.purpose for charge in charges))

    # Some of one cluster; one of a digit, from whichever cluster knows it.
    print("labels in cluster 3:", release.sample(8, seed=7, where={"cluster": 3}, as_="arrays")["digit"].to_pylist())
    print_image(release.sample(1, seed=7, where={"digit": 3}, as_="arrays")["image"][0])


def print_image(image: Any) -> None:
    for row in image:
        print("   ", "".join("██" if pixel else "  " for pixel in row))


if __name__ == "__main__":
    main()
