// How rules are written for nft(8).

/** At once and always: the kernel sends only some of the ICMP messages that it should. */
export const REFUSED = ['meta l4proto tcp reject with tcp reset', 'reject'];

/** `hook`: type, hook and priority of a chain that the kernel calls; empty: others jump to it. */
export function chain(name: string, hook: string, rules: readonly string[]): string {
  return [`  chain ${name} {`, ...[hook, ...rules].filter(Boolean).map((line) => `    ${line}`), '  }'].join('\n');
}

/** A whole table: one that is there is replaced at once. */
export function replaced(family: string, table: string, objects: readonly string[]): string {
  const name = `table ${family} ${table}`;
  return [`${name} {}`, `delete ${name}`, `${name} {`, ...objects, '}', ''].join('\n');
}

/** As nft writes a set; none where there are none. */
export function setOf(elements: readonly (string | number)[]): string[] {
  return elements.length ? [`{ ${elements.join(', ')} }`] : [];
}

export function portsBetween([first, last]: readonly [number, number]): string {
  return `${first}-${last}`;
}
