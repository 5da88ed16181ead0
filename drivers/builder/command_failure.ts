// The failed command and its last output, from the output of a unit. Programs can forge lines of the platform, but only
// affect the reason of their own failure.
import { FAILURE_LINES_MAX, cutText, failureExcerpt, type Hide } from '../../core/log/failure_excerpt';
import { BUILD_COMMAND, type BuildPlan } from '../builder';

const COMMAND_MAX = 100;

/** Processes the output of a unit line by line. */
export interface FailureReader {
  add(line: string): void;
  /** The failed step, as the subject of a sentence. */
  subject(): string;
  /** The last output that explains the failure; '' where there is none. */
  excerpt(): string;
  /** The complete reason, if the output contains it; null where the exit status is more informative. */
  reason(): string | null;
}

/** @param name `The release command` */
export function readCommandFailure(name: string, command: string, hide: Hide): FailureReader {
  const tail = keepTail();
  return {
    add: tail.add,
    subject: () => `${name} ${quoteCommand(command)}`,
    excerpt: () => failureExcerpt(tail.lines(), hide),
    reason: () => null,
  };
}

/** For the script of build_script.ts, which prints `-----> name` before each step. */
export function readStepFailure(steps: BuildPlan['steps'], hide: Hide): FailureReader {
  const tail = keepTail();
  let begun = 0;
  return {
    add(line) {
      if (begun < steps.length && line === `-----> ${steps[begun]?.name}`) {
        begun += 1;
        tail.clear();
      } else if (!line.startsWith(`${steps[begun - 1]?.name} failed with exit code `)) tail.add(line);
    },
    subject() {
      const step = steps[begun - 1];
      if (step === undefined) return 'The build';
      const { name, command } = step;
      return name === BUILD_COMMAND ? `The build command ${quoteCommand(command)}` : `The build step \`${name}\``;
    },
    excerpt: () => failureExcerpt(tail.lines(), hide),
    reason: () => null,
  };
}

/** Keeps the last lines of an output of any length. */
export function keepTail(): { add(line: string): void; clear(): void; lines(): readonly string[] } {
  let lines: string[] = [];
  return {
    add(line) {
      lines.push(line);
      if (lines.length > 2 * FAILURE_LINES_MAX) lines = lines.slice(-FAILURE_LINES_MAX);
    },
    clear: () => void (lines = []),
    lines: () => lines,
  };
}

function quoteCommand(command: string): string {
  return `\`${cutText(command.replaceAll(/\s+/g, ' ').trim(), COMMAND_MAX)}\``;
}
