// Which changes of a repository count: globs over its paths.

/**
 * Whether one of the paths is meant by one of the globs; no globs mean everything. Paths are relative, with slashes.
 */
export function concerns(globs: readonly string[], paths: readonly string[]): boolean {
  if (!globs.length) return true;
  const patterns = globs.map((glob) => folderwise(glob).split('/'));
  return paths.some((path) => {
    const names = path.split('/');
    return patterns.some((pattern) => fits(pattern, names, '**', nameFits));
  });
}

/** A folder matches its contents; so does a name without wildcards, unless it is a file. */
function folderwise(glob: string): string {
  const plain = glob.replace(/^\.?\//, '').replace(/\/$/, '');
  const whole = glob.endsWith('/') || !/[*?]/.test(plain);
  return whole ? `${plain}/**` : plain;
}

function nameFits(pattern: string, name: string): boolean {
  return fits([...pattern], [...name], '*', (wanted, found) => wanted === '?' || wanted === found);
}

// Goes back only to the last wildcard, so that no pattern takes more than the product of both lengths.
function fits(
  pattern: readonly string[],
  parts: readonly string[],
  wildcard: string,
  same: (wanted: string, found: string) => boolean,
): boolean {
  let [at, part, star, retry] = [0, 0, -1, 0];
  while (part < parts.length) {
    if (pattern[at] === wildcard) {
      [star, retry] = [at, part];
      at += 1;
    } else if (at < pattern.length && same(pattern[at] as string, parts[part] as string)) {
      at += 1;
      part += 1;
    } else if (star >= 0) {
      retry += 1;
      [at, part] = [star + 1, retry];
    } else {
      return false;
    }
  }
  while (pattern[at] === wildcard) at += 1;
  return at === pattern.length;
}
