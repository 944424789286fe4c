"""What makes training faster and changes nothing that is computed."""
