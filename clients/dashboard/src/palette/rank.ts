// Which commands a text means, the best first.
import type { IconName } from '../parts/icon';

export interface Command {
  /** One of its kind in the list. */
  id: string;
  label: string;
  /** What it is, such as `application in Web shop`. */
  hint: string;
  icon: IconName;
  /** Other words that find it. */
  words?: string;
  /** Shown before anything is typed. */
  isSuggested?: boolean;
  /** Where it leads; otherwise it does something. */
  href?: string;
  run?(): Promise<void> | void;
}

/** Commands that have all words of the text, in the label, the hint, or their other words. */
export function ranked(commands: readonly Command[], text: string): Command[] {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return commands.filter(({ isSuggested }) => isSuggested);
  const parts = wanted.split(/\s+/);
  return commands
    .flatMap((command) => {
      const rank = rankOf(command, wanted, parts);
      return rank === null ? [] : [{ command, rank }];
    })
    .sort((left, right) => left.rank - right.rank)
    .map(({ command }) => command);
}

/** Smaller is better; null for one that does not have the words. */
function rankOf({ label, hint, words = '' }: Command, wanted: string, parts: readonly string[]): number | null {
  const name = label.toLowerCase();
  const all = `${name} ${hint} ${words}`.toLowerCase();
  if (!parts.every((part) => all.includes(part))) return null;
  if (name === wanted) return 0;
  if (name.startsWith(wanted)) return 1;
  if (parts.every((part) => new RegExp(`(^|[^a-z0-9])${escapeText(part)}`).test(name))) return 2;
  return parts.every((part) => name.includes(part)) ? 3 : 4;
}

const escapeText = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/-]/g, String.raw`\$&`);
