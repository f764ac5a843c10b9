"""What several areas of the tests share: server processes talked to line by line, and installed peers."""
