"""What commands share: options, output, progress, configuration."""
