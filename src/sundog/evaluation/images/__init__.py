"""Images: quality scores, classifiers trained on synthetic images, and nearest real images."""
