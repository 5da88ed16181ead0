// db extensions: lists, enables, disables.
import { sessionCommand, text, toggle, tuple, word } from '../command';
import { Failure, usageFailure } from '../failure';
import { printOne, printRows, type Row } from '../output/print';
import type { Session } from '../session';
import { waitWhile } from '../settle';

type Flags = { readonly enable?: string; readonly disable?: string; readonly all?: boolean };

const COLUMNS = {
  EXTENSION: 'name',
  VERSION: (row: Row) => row.installed_version ?? row.version,
  STATUS: 'status',
  DESCRIPTION: (row: Row) => row.status_reason ?? row.description,
};

/** @param find the database of a name or an id */
export const extensionsCommand = (find: (session: Session, given: string) => Promise<Row>) =>
  sessionCommand<Partial<Flags>, [string]>({
    brief: 'List the extensions of a PostgreSQL database, enable one, or disable it',
    text: 'Also those that need a superuser, such as postgis. Some are refused: --all shows them, with the reason.',
    target: 'project',
    flags: {
      enable: text('Create it in the database', 'extension'),
      disable: text('Drop it from the database', 'extension'),
      all: toggle('List those that are refused, too'),
    },
    args: tuple(word('database', 'Name or id of the database')),
    async run(session, flags, given) {
      if (flags.enable !== undefined && flags.disable !== undefined)
        throw usageFailure('Pass --enable or --disable, not both.');
      const path = `/v2/databases/${(await find(session, given)).id}/extensions`;
      const name = flags.enable ?? flags.disable;
      if (name === undefined) {
        const rows = await session.list<Row>(path);
        return printRows(flags.all ? rows : rows.filter(({ status }) => status !== 'refused'), COLUMNS, flags);
      }
      const one = `${path}/${encodeURIComponent(name)}`;
      await session.request('POST', `${one}/${flags.enable === undefined ? 'disable' : 'enable'}`);
      const row = await waitWhile(session, one, ['enabling', 'disabling'], {});
      printOne(row, flags, { extension: 'name', version: 'installed_version', status: 'status' });
      if (row.status_reason) throw new Failure(String(row.status_reason));
    },
  });
