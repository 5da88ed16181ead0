// Syntax of rules for nft(8).

/** TCP is rejected by a reset, which always arrives at once: the kernel limits the rate of ICMP errors. */
export const REFUSED = ['meta l4proto tcp reject with tcp reset', 'reject'];

/** `hook`: type, hook and priority of a chain that the kernel calls; empty: others jump to it. */
export function chain(name: string, hook: string, rules: readonly string[]): string {
  return [`  chain ${name} {`, ...[hook, ...rules].filter(Boolean).map((line) => `    ${line}`), '  }'].join('\n');
}

/** A complete table; an existing one is replaced atomically. */
export function replaced(family: string, table: string, objects: readonly string[]): string {
  const name = `table ${family} ${table}`;
  return [`${name} {}`, `delete ${name}`, `${name} {`, ...objects, '}', ''].join('\n');
}

/** The nft notation of an anonymous set; empty for no elements. */
export function setOf(elements: readonly (string | number)[]): string[] {
  return elements.length ? [`{ ${elements.join(', ')} }`] : [];
}

export function portsBetween([first, last]: readonly [number, number]): string {
  return `${first}-${last}`;
}
