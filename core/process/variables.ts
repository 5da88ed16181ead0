// Variables of programs: those that the platform sets, and those of the owner of an application.

/**
 * The owner's win. An empty value of a variable that the platform sets takes it away: some programs refuse to start
 * while a variable is there at all.
 */
export function overrideVariables(
  platform: Readonly<Record<string, string>>,
  own: Readonly<Record<string, string>>,
): Record<string, string> {
  const kept = Object.entries(own).filter(([key, value]) => value !== '' || !(key in platform));
  const left = Object.entries(platform).filter(([key]) => !(key in own));
  return Object.fromEntries([...left, ...kept]);
}

/** Bytes of the variables in execve(2), without its pointers: `NAME=value` and a zero byte each. */
export function environmentBytes(variables: Readonly<Record<string, string>>): number {
  return Object.entries(variables).reduce((sum, [key, value]) => sum + Buffer.byteLength(key + value) + 2, 0);
}
