// The directives of schema/ that are written out at the start. What they give is in test/golden/.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { print } from 'graphql';
import { readSdl } from '../../contract/sdl';

const written = (fields: string, more = ''): string => {
  const folder = mkdtempSync(path.join(tmpdir(), 'platform-sdl-'));
  try {
    writeFileSync(path.join(folder, 'thing.graphql'), `type Thing { id: ID! } extend type Query { ${fields} } ${more}`);
    return readSdl(folder).map(print).join('\n').replace(/\s+/g, ' ');
  } finally {
    rmSync(folder, { recursive: true });
  }
};

test('the arguments of a page stand between what the list is of and its filters', () => {
  const text = written('things(name: String, id: ID!, project_id: ID): [Thing!]! @list(of: "things", sorts: ["name"])');
  expect(text).toContain(
    'things(id: ID!, project_id: ID, limit: Int = 20 @spec(page: 20, maxPage: 100), cursor: String, sort: String ' +
      '@spec(sorts: ["name"]), name: String): ThingList!',
  );
  expect(text).toContain('"A page of things." type ThingList { data: [Thing!]!');
});

test('two lists of the same items have one type of page', () => {
  const list = '[Thing!]! @list(of: "things")';
  expect(written(`a: ${list} b: ${list}`).match(/type ThingList/g)).toHaveLength(1);
});

test('a list whose page has a type of its own gets the arguments alone', () => {
  const text = written('things: Things! @list', 'type Things { next_cursor: String }');
  expect(text).toContain('things(limit: Int = 20 @spec(page: 20, maxPage: 100), cursor: String): Things!');
});

test('a group that is named stays, and so does an argument that @rest does not have', () => {
  expect(written('a: ID @rest(path: "/v2/a", group: "DNS", statuses: 200)')).toContain('group: "DNS", statuses: 200');
});

test.each([
  ['things: [Thing!]! @list', /^schema: things: @list needs `of`$/],
  [
    'a: [Thing!]! @list(of: "things") b: [Thing!]! @list(of: "stuff")',
    /^schema: b: another list has "things" in pages of Thing$/,
  ],
  ['things: [Thing!]! @list(of: "things", sort: "name")', /^schema: things: @list has no argument "sort"$/],
  ['a: ID @inProject @rest(path: "/v2/a", summary: "Get a")', /^schema: a: the summary .* "the current project"$/],
])('%s is a contradiction', (fields, message) => {
  expect(() => written(fields)).toThrow(message);
});
