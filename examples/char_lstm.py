"""Train an LSTM to continue text, letter by letter, on the help texts that come with Python (pydoc's topics)."""

from __future__ import annotations

import math
from pydoc_data.topics import topics
from typing import Any

import numpy as np
from common import arguments, check_reloaded, progress

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F

LENGTH = 48


class Model(nn.Module):
    """Embedding, LSTM and a linear layer back to letters."""

    def __init__(self, letters: int) -> None:
        super().__init__()
        self.embed, self.lstm, self.head = nn.Embedding(letters, 32), nn.LSTM(32, 96), nn.Linear(96, letters)

    def forward(self, x: Any, state: Any = None) -> tuple[Any, Any]:
        hidden, state = self.lstm(self.embed(x), state)
        return self.head(hidden), state


def text() -> str:
    """About 150 000 letters of help texts."""
    joined = "\n".join(topics[name] for name in sorted(topics))
    return joined.encode("ascii", "ignore").decode()[:150_000]


def continue_text(model: Model, letters: list[str], start: str, count: int) -> str:
    """Let the model write on."""
    numbers = {letter: number for number, letter in enumerate(letters)}
    written, state = list(start), None
    with torch.no_grad():
        for position in range(len(start) + count - 1):
            output, state = model(torch.tensor([[numbers[written[position]]]]), state)
            if position >= len(start) - 1:
                written.append(letters[int(torch.multinomial(F.softmax(output[0, 0] * 1.4, dim=0), 1))])
    return "".join(written)


def main() -> None:
    options = arguments(__doc__ or "", epochs=3)
    torch.manual_seed(options.seed)
    corpus = text()
    letters = sorted(set(corpus))
    numbers = np.array([letters.index(letter) for letter in corpus], np.int64)
    held_out = torch.from_numpy(numbers[-4801:])
    data = torch.from_numpy(numbers[:-4801])
    model = Model(len(letters))
    model_file = options.out / "char_lstm.pt"
    test_x, test_y = held_out[:-1].view(-1, LENGTH).t(), held_out[1:].view(-1, LENGTH).t()
    if options.predict:
        model.load_state_dict(torch.load(model_file))
        with torch.no_grad():
            options.predict.write_bytes(model(test_x)[0].numpy().tobytes())
        return

    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    steps = options.epochs * (len(data) // (LENGTH * options.batch))
    window = torch.arange(LENGTH).unsqueeze(1)
    for _ in progress(range(steps), steps, "training"):
        places = window + torch.randint(0, len(data) - LENGTH - 1, (options.batch,))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data[places])[0].view(-1, len(letters)), data[places + 1].reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    with torch.no_grad():
        result = model(test_x)[0]
        bits = F.cross_entropy(result.view(-1, len(letters)), test_y.reshape(-1)).item() / math.log(2)
    torch.save(model.state_dict(), model_file)
    check_reloaded(__file__, options, model_file, result.numpy().tobytes())
    print(continue_text(model, letters, "The ", 160))
    print(f"held-out text: {bits:.2f} bits a letter (uniform guessing: {math.log2(len(letters)):.2f})")


if __name__ == "__main__":
    main()
