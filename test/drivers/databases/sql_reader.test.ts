/** @user any */
// Statements of a dump are the same, wherever the pieces of the file end.
import { SqlReader, type Dialect } from '../../../drivers/database/imports/sql_reader';

const ROWS = Array.from({ length: 400 }, (_, at) => `(${at},'it\\'s; ${'x'.repeat(at % 97)}')`).join(',');
const DUMPS: Record<Dialect, string> = {
  mysql:
    `-----\nCREATE TABLE t (i int, s text);\nINSERT INTO t VALUES ${ROWS};\n` +
    `/* a; comment */ SELECT 'a\\\\';SELECT 3;\n`,
  postgresql:
    `create table t (i int, s text);\ninsert into t values ${ROWS.replaceAll("\\'", "''")};\n` +
    `create function f() returns int language sql as $a$ select 1; $a$;\n` +
    `copy t from stdin;\n1\ta;b\n2\t\\\\.\n\\.\nselect 3;\n`,
};

async function statementsOf(dialect: Dialect, dump: string, pieceBytes: number): Promise<string[]> {
  const bytes = Buffer.from(dump);
  const pieces = (async function* () {
    for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
  })();
  const reader = new SqlReader(pieces, dialect);
  const found: string[] = [];
  for (let next = await reader.next(); next; next = await reader.next()) {
    found.push(next.text);
    if (/^copy\b/.test(next.text))
      for await (const rows of reader.copyRows()) found.push(...rows.toString().split('\n'));
  }
  return found.filter((text) => text !== '');
}

test.each(['mysql', 'postgresql'] as const)('a dump of %s', async (dialect) => {
  const dump = DUMPS[dialect];
  const whole = await statementsOf(dialect, dump, dump.length);
  expect(whole).toHaveLength(dialect === 'mysql' ? 4 : 7);
  for (let bytes = 1; bytes < dump.length; bytes += 1 + Math.floor(bytes / 8))
    expect([bytes, await statementsOf(dialect, dump, bytes)]).toEqual([bytes, whole]);
});

test('nothing of the last statement is lost where the file ends with a piece', async () => {
  const values = `(1,'${'x'.repeat(200)}'),`.repeat(999) + `(2,'y')`;
  const dump = `${`INSERT INTO t VALUES ${values};\n`.repeat(12)}SELECT sleep(3);\n`;
  for (const bytes of [16_384, 65_536, 70_000, 1 << 20]) {
    const found = await statementsOf('mysql', dump, bytes);
    expect([bytes, found.length, found.at(-1)]).toEqual([bytes, 13, 'SELECT sleep(3)']);
  }
});
