import { readFileSync } from 'node:fs';
import path from 'node:path';
import { chapterOf, versionsIn } from '../../../core/releases/changelog';
import { version } from '../../../package.json';

const TEXT = `# Changelog

## [Unreleased]

### Added

- Something.

## [1.1.0-rc.1] - 2027-01-02

- A candidate.

\`\`\`md
## A heading of an example
\`\`\`

## 1.0.0

### Fixed

- A fault.
`;

test('a chapter goes from its heading to that of the release before', () => {
  expect(chapterOf(TEXT, 'Unreleased')).toBe('### Added\n\n- Something.');
  expect(chapterOf(TEXT, '1.1.0-rc.1')).toBe('- A candidate.\n\n```md\n## A heading of an example\n```');
  expect(chapterOf(TEXT, '1.0.0')).toBe('### Fixed\n\n- A fault.');
  expect(chapterOf(TEXT.replaceAll('\n', '\r\n'), '1.0.0')).toBe('### Fixed\n\n- A fault.');
  for (const missing of ['1.1.0', '1.0', '0.0', '.', '']) expect(chapterOf(TEXT, missing)).toBeNull();
  expect(versionsIn(TEXT)).toEqual(['1.1.0-rc.1', '1.0.0']);
});

test('the changelog has a chapter of this version', () => {
  const text = readFileSync(path.resolve(__dirname, '../../../CHANGELOG.md'), 'utf8');
  expect(versionsIn(text)).toContain(version);
  expect(chapterOf(text, version)).toContain('### Added');
});
