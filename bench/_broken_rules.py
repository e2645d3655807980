BROKEN: list[tuple[str, str, str, str]] = []
