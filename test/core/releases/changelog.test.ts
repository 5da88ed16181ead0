import { readFileSync } from 'node:fs';
import path from 'node:path';
import { changesOf, chapterOf } from '../../../core/releases/changelog';
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

### Security

- A hole.
`;

test('a chapter goes from its heading to that of the release before', () => {
  expect(chapterOf(TEXT, 'Unreleased')).toBe('### Added\n\n- Something.');
  expect(chapterOf(TEXT, '1.1.0-rc.1')).toBe('- A candidate.\n\n```md\n## A heading of an example\n```');
  const first = '### Fixed\n\n- A fault.\n\n### Security\n\n- A hole.';
  expect(chapterOf(TEXT, '1.0.0')).toBe(first);
  expect(chapterOf(TEXT.replaceAll('\n', '\r\n'), '1.0.0')).toBe(first);
  for (const missing of ['1.1.0', '1.0', '0.0', '.', '']) expect(chapterOf(TEXT, missing)).toBeNull();
});

test('the index of releases gets the chapter, and its part on security where it has one', () => {
  expect(changesOf(TEXT, '1.0.0')).toEqual({ changes: chapterOf(TEXT, '1.0.0'), security: '- A hole.' });
  expect(changesOf(TEXT, '1.1.0-rc.1').security).toBeNull();
  // Not the chapter of its candidate.
  expect(changesOf(TEXT, '1.1.0')).toEqual({ changes: '', security: null });
});

test('the changelog has a chapter of this version', () => {
  const text = readFileSync(path.resolve(__dirname, '../../../CHANGELOG.md'), 'utf8');
  expect(chapterOf(text, version)).toContain('### Added');
});
