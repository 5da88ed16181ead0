// Wildcards of policies, CORS rules and conditions.

/**
 * `*` matches any characters, `?` one. Only the last `*` is backtracked, so the time is at most the product of the
 * lengths of pattern and text.
 */
export function wildcardMatches(pattern: string, text: string): boolean {
  let [p, t, star, mark] = [0, 0, -1, 0];
  while (t < text.length) {
    const wanted = pattern[p];
    if (wanted === '*') {
      star = p;
      mark = t;
      p += 1;
    } else if (wanted === '?' || wanted === text[t]) {
      p += 1;
      t += 1;
    } else if (star >= 0) {
      p = star + 1;
      mark += 1;
      t = mark;
    } else return false;
  }
  while (pattern[p] === '*') p += 1;
  return p === pattern.length;
}
