collect_ignore_glob = ["*"]  # parts of programs, for packages that may not be installed
