// Output of the demo: each step with the elapsed seconds, results, and log lines.
export interface Show {
  step(words: string): void;
  /** An expectation: printed when it holds. @throws Disappointed when it does not */
  expect(holds: boolean, words: string): void;
  line(text: string): void;
  note(words: string): void;
}

class Disappointed extends Error {}

const WIDTH = 150;

export function openShow(write: (text: string) => void, now = performance.now.bind(performance)): Show {
  const begin = now();
  const clock = (): string => `${((now() - begin) / 1000).toFixed(1).padStart(5)} s`;
  const note = (words: string): void => write(`${clock()}    ${words}\n`);
  return {
    note,
    step: (words) => write(`\n${clock()}  ${words}\n`),
    line: (text) => write(`           | ${text.length > WIDTH ? `${text.slice(0, WIDTH - 1)}…` : text}\n`),
    expect(holds, words) {
      if (!holds) throw new Disappointed(words);
      note(`ok: ${words}`);
    },
  };
}
