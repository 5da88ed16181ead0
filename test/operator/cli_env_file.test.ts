import { parseEnvFile } from '../../server/operator/env_file';

test('a .env file has comments, export, quotes and values of several lines', () => {
  const text = [
    '\uFEFF# A comment with A=1 and "a quote',
    'PLAIN=one two # and a comment',
    'export  EXPORTED = spaced  ',
    'EMPTY=',
    'EMPTY_COMMENTED= # nothing',
    'HASH=a#b',
    `SINGLE='as $it \\n stands'`,
    'DOUBLE="line\\nbreak \\"quoted\\" \\\\ \\$" # comment',
    'URL=postgresql://u:p@h/d?a=b&c=d',
    'MULTI="first',
    'INNER=not a variable',
    'last"',
    '',
    'END=1',
  ].join('\r\n');
  expect(parseEnvFile(text).map(({ key, value }) => [key, value])).toEqual([
    ['PLAIN', 'one two'],
    ['EXPORTED', 'spaced'],
    ['EMPTY', ''],
    ['EMPTY_COMMENTED', ''],
    ['HASH', 'a#b'],
    ['SINGLE', 'as $it \\n stands'],
    ['DOUBLE', 'line\nbreak "quoted" \\ \\$'],
    ['URL', 'postgresql://u:p@h/d?a=b&c=d'],
    ['MULTI', 'first\nINNER=not a variable\nlast'],
    ['END', '1'],
  ]);
});

test.each([
  ['A=1\nhunter2\nB=2', 2],
  ['A="x\ny"\nB="hunter2\nC=3', 3],
  ['A=1\n\n=hunter2', 3],
])('%j names the line and not its text', (text, line) => {
  expect(() => parseEnvFile(text)).toThrow(`line ${line} of the file is not KEY=VALUE`);
});
