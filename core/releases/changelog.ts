// CHANGELOG.md has a chapter per release, in the form of Keep a Changelog.

const RELEASE = /^## \[?v?(\d+\.\d+\.\d+[^\s\]]*|Unreleased)\]?.*$/;
const KIND = /^### (.+?)\s*$/;
const LENGTH_MAX = 20_000;

/** What the changelog says of a release, as the index of releases has it (tools/release/release.mjs). */
interface Changes {
  /** The chapter, empty where there is none. */
  changes: string;
  /** Its part on security. */
  security: string | null;
}

export function changesOf(changelog: string, version: string): Changes {
  const chapter = chapterOf(changelog, version) ?? '';
  const security = partOf(chapter, KIND, 'Security')?.slice(0, LENGTH_MAX) || null;
  return { changes: chapter.slice(0, LENGTH_MAX), security };
}

/** The chapter of a release, without its heading; null where the changelog has none. */
export function chapterOf(changelog: string, version: string): string | null {
  return partOf(changelog, RELEASE, version);
}

/** What stands between the heading of that name and the next one of its kind. */
function partOf(text: string, heading: RegExp, name: string): string | null {
  const lines = text.split(/\r?\n/);
  const start = lines.findIndex((line) => heading.exec(line)?.[1] === name);
  if (start < 0) return null;
  const rest = lines.slice(start + 1);
  const length = rest.findIndex((line) => heading.test(line));
  return rest
    .slice(0, length < 0 ? undefined : length)
    .join('\n')
    .trim();
}
