// What somebody may have meant who mistyped a command.

/** Letters that may be wrong, missing, too many or in another order. */
const DISTANCE_MAX = 2;

/**
 * The names that are closest to what was typed, or those that begin with it.
 * @param typed the words before the first option, with what may be arguments
 */
export function suggestCommands(typed: readonly string[], names: readonly string[]): string[] {
  const below = names.filter((name) => name.startsWith(`${typed[0]} `));
  const found = names.map((name) => {
    const count = name.split(' ').length;
    return { name, distance: distanceOf(typed.slice(0, count).join(' '), name) };
  });
  const least = Math.min(...found.map(({ distance }) => distance));
  if (least <= DISTANCE_MAX) return found.filter(({ distance }) => distance === least).map(({ name }) => name);
  return below;
}

/** Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours. */
function distanceOf(from: string, to: string): number {
  const rows = [Array.from({ length: to.length + 1 }, (_, column) => column)];
  for (let row = 1; row <= from.length; row += 1) {
    const cells = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const before = rows[row - 1] as number[];
      const isSame = from[row - 1] === to[column - 1];
      const isSwap = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      cells[column] = Math.min(
        (before[column] as number) + 1,
        (cells[column - 1] as number) + 1,
        (before[column - 1] as number) + (isSame ? 0 : 1),
        isSwap ? ((rows[row - 2] as number[])[column - 2] as number) + 1 : Infinity,
      );
    }
    rows.push(cells);
  }
  return rows[from.length]?.[to.length] as number;
}
