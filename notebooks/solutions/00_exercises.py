"""Solutions of chapter 00."""


def stoppers(findings):
    return [finding.name for finding in findings if finding.needed and finding.state != "ok"]


def new_enough(found, oldest):
    def numbers(version):
        return tuple(int(part) for part in version.split("."))

    return numbers(found) >= numbers(oldest)


def harmless(content):
    return content + b"\n"
