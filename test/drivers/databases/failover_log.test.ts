// The log of an instance of CloudNativePG, in lines that the platform reads as those of PostgreSQL.
import { parseLogLine } from '../../../drivers/database/postgresql/log';
import { serverLines } from '../../../drivers/database/postgresql/failover/log';

const lineOf = (entry: unknown) => ({ stream: 'stderr' as const, text: JSON.stringify(entry) });

test('records of PostgreSQL are shown, and what the manager says is not', () => {
  const record = {
    ...{ log_time: '2026-11-29 21:40:00.123 UTC', user_name: 'app', database_name: 'shop', process_id: '45' },
    ...{ error_severity: 'ERROR', sql_state_code: '22012', message: 'division by zero', detail: 'In a\nrow.' },
  };
  const [line] = serverLines(lineOf({ level: 'info', logger: 'postgres', msg: 'record', record }));
  expect(parseLogLine(line?.text ?? '')).toEqual({
    ...{ at: '2026-11-29T21:40:00.123Z', source: 'server', severity: 'ERROR' },
    ...{ message: 'division by zero In a row.', username: 'app', database: 'shop', process: 45 },
  });
  expect(serverLines(lineOf({ level: 'info', logger: 'instance-manager', msg: 'started' }))).toEqual([]);
  const plain = { stream: 'stderr' as const, text: 'could not start' };
  expect(serverLines(plain)).toEqual([plain]);
});
