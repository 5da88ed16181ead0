// To be imported before the drivers: a host whose kernel does not grow a mounted file system. Its resize2fs refuses a
// device as the real one does there, and is the real one for an image.
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const directory = mkdtempSync(path.join(os.tmpdir(), 'programs-'));
const program = path.join(directory, 'resize2fs');
writeFileSync(
  program,
  `#!/bin/sh
case "$1" in
  /dev/*) echo "resize2fs: Permission denied to resize filesystem" >&2; exit 1 ;;
esac
PATH=/usr/sbin:/sbin:/usr/bin:/bin exec resize2fs "$@"
`,
);
chmodSync(program, 0o755);
process.env.PATH = `${directory}:${process.env.PATH ?? ''}`;
