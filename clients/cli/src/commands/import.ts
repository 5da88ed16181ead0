// db import: sends a file to a database, or names where its data are.
import * as fs from 'node:fs';
import { sessionCommand, text, toggle, tuple, word } from '../command';
import { Failure } from '../failure';
import { uploadFile } from '../http/upload';
import { notice } from '../output/notice';
import { printRows, type Row } from '../output/print';
import type { Session } from '../session';
import { waitWhile } from '../settle';

type Flags = { readonly exclude?: string; readonly detach?: boolean };

const TABLES = { TABLE: 'name', 'IN THE SOURCE': 'rows_read', IMPORTED: 'rows' };
const WORKING = ['awaiting_upload', 'pending', 'running'];

/** @param find the database of a name or an id */
export const importCommand = (find: (session: Session, given: string) => Promise<Row>) =>
  sessionCommand<Partial<Flags>, [string, string]>({
    brief: 'Import a dump, or another database: svc db import NAME orders.dump',
    text:
      'From a file, an https address, or a server: postgresql://user:password@host/name, mysql://…. PostgreSQL takes ' +
      'plain SQL and archives of pg_dump, MariaDB SQL of mysqldump, Redis an RDB file; compressed with gzip, too. ' +
      'What fails is taken back.',
    target: 'project',
    flags: {
      exclude: text('Tables whose rows are left out, with commas', 'tables'),
      detach: toggle('Do not wait for the end'),
    },
    args: tuple(word('database', 'Name or id of the database'), word('source', 'File or address')),
    async run(session, flags, given, source) {
      const isAddress = /^[a-z]+:\/\//.test(source);
      const bytes = isAddress ? 0 : sizeOf(source);
      const path = `/v2/databases/${(await find(session, given)).id}/imports`;
      const made = await session.request('POST', path, {
        body: {
          source: isAddress ? { url: source } : { upload: true },
          ...(flags.exclude !== undefined && { exclude: flags.exclude.split(',') }),
        },
      });
      const one = `${path}/${made.id}`;
      if (!isAddress) {
        await uploadFile(
          session,
          { file: source, bytes, type: 'application/octet-stream' },
          String(made.upload_url),
        ).catch(async (error: unknown) => {
          await session.send('POST', `${one}/cancel`).catch(() => undefined);
          throw error;
        });
      }
      if (flags.detach) return notice(`The import ${made.id} goes on.`);
      report(await waitWhile(session, one, WORKING, {}), flags);
    },
  });

function sizeOf(file: string): number {
  const found = fs.statSync(file, { throwIfNoEntry: false });
  if (!found?.isFile()) throw new Failure(`There is no file ${file}.`);
  return found.size;
}

function report(row: Row, flags: Parameters<typeof printRows>[2]): void {
  printRows(row.tables as Row[], TABLES, flags);
  for (const { kind, name, reason } of row.not_taken_over as Row[])
    notice(`Not imported: ${String(kind)} ${String(name)}. ${String(reason)}`);
  if (row.status !== 'completed') throw new Failure(String(row.status_reason ?? 'The import failed.'));
}
