// Programs that stand before the one that is meant, and do not pass signals on, or pass them on a second time.

/** Shells: they pass no signal on, but a script may handle it by itself. */
export const SHELLS: readonly string[] = ['sh', 'dash', 'bash', 'ash', 'busybox', 'zsh', 'ksh', 'mksh'];
/** Of Node.js, by the name of the process or of its script. npm would forward signals a second time. */
export const PACKAGE_MANAGERS: readonly string[] = ['npm', 'npx', 'yarn', 'pnpm', 'corepack'];
export const OTHER_WRAPPERS: readonly string[] = [
  ...['bwrap', 'setpriv', 'unshare', 'script', 'nice', 'ionice', 'env', 'timeout', 'time', 'tini', 'dumb-init'],
];
