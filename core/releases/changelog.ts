// CHANGELOG.md has a chapter per release, in the form of Keep a Changelog.

const HEADING = /^## \[?v?(\d+\.\d+\.\d+[^\s\]]*|Unreleased)\]?.*$/;

/** The chapter of a release, without its heading; null where the changelog has none. */
export function chapterOf(changelog: string, version: string): string | null {
  const lines = changelog.split(/\r?\n/);
  const isOf = (line: string, name?: string): boolean => {
    const found = HEADING.exec(line)?.[1];
    return found !== undefined && (name === undefined || found === name);
  };
  const start = lines.findIndex((line) => isOf(line, version));
  if (start < 0) return null;
  const length = lines.slice(start + 1).findIndex((line) => isOf(line));
  return lines
    .slice(start + 1, length < 0 ? lines.length : start + 1 + length)
    .join('\n')
    .trim();
}

/** Versions that have a chapter, in the order of the changelog: the newest first. */
export function versionsIn(changelog: string): string[] {
  return changelog.split(/\r?\n/).flatMap((line) => {
    const version = HEADING.exec(line)?.[1];
    return version && version !== 'Unreleased' ? [version] : [];
  });
}
