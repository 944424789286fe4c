"""The page of an evaluation: one HTML file that stands by itself, by `page.page` or `compare_page.compare_page`."""
