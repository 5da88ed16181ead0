// Arguments of Node.js that a process of this platform hands to another one.

/** Those of this process, without files of variables: they hold secrets, and the other process gets its own. */
export function inheritedNodeArguments(): string[] {
  return process.execArgv.filter((argument) => !argument.startsWith('--env-file'));
}
