import pytest
from estimator_container.training import page


class Host:
    """What a host does for the pages of its ranks."""

    def __init__(self, folder):
        self.folder_file = folder / "training-steps"
        self.pages = folder / "pages"
        self.pages.mkdir()
        self.folder_file.write_text(str(self.pages))

    def open(self, rank="3"):
        return page.open_page(str(self.folder_file), rank)

    def read(self):
        return page.read_pages(str(self.pages))


@pytest.fixture
def account_of(monkeypatch):
    """What the account of the rank is told by a module, which asks for its clock."""

    def account_of(module):
        said = []

        class Account:
            begin = staticmethod(said.append)
            end = staticmethod(lambda: said.append("end"))

        class Clock:
            account = Account

        monkeypatch.setattr(module, "clock_of_rank", lambda: Clock)
        return said

    return account_of


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)
