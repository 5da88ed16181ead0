// The records of a zone: a table, and a form for one that is added or changed.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useQuery } from '../../api/use_query';
import { Confirm } from '../../parts/dialog';
import { Select } from '../../parts/form';
import { Section, Table, Waiting } from '../../parts/page';
import { Paging } from '../../parts/paging';
import { RecordForm, TYPES, type DnsType } from './record_form';
import { Clip } from '../../parts/table';
import { kindWords } from '../../parts/words';
import { revertChange } from '../../parts/undo';
import type { ZoneData } from './zone';
import { reversalText } from '../../parts/reversal';

const RECORDS = graphql(`
  query DnsRecords($id: ID!, $cursor: String, $type: DnsType) {
    listDnsRecords(id: $id, limit: 100, cursor: $cursor, type: $type) {
      data {
        id
        type
        name
        fqdn
        value
        ttl
        priority
        weight
        port
        flags
        tag
        comment
        is_protected
        managed_by {
          type
          id
        }
      }
      next_cursor
    }
  }
`);
const DELETE = graphql(`
  mutation DeleteRecord($id: ID!, $record_id: ID!) {
    deleteDnsRecord(id: $id, record_id: $record_id)
  }
`);

export type DnsRecord = ResultOf<typeof RECORDS>['listDnsRecords']['data'][number];

interface RecordsProps {
  zone: ZoneData;
  mayChange: boolean;
  changed(): Promise<void>;
}

export function Records({ zone, mayChange, changed }: RecordsProps) {
  const [cursor, setCursor] = useState<string | null>(null);
  const [type, setType] = useState<DnsType | ''>('');
  const { data, error, reload } = useQuery(RECORDS, { id: zone.id, cursor, type: type || null });
  const [edited, setEdited] = useState<DnsRecord | 'new' | null>(null);
  const list = data?.listDnsRecords;
  const done = async (): Promise<void> => {
    setEdited(null);
    await Promise.all([reload(), changed()]);
  };
  const add = mayChange && (
    <button type="button" onClick={() => setEdited('new')}>
      Add a record
    </button>
  );
  const choose = (value: string): void => {
    setCursor(null);
    setType(value as DnsType | '');
  };
  return (
    <Section title="Records" actions={add}>
      {edited && (
        <RecordForm
          key={edited === 'new' ? 'new' : edited.id}
          zone={zone}
          record={edited === 'new' ? null : edited}
          done={done}
          onClose={() => setEdited(null)}
        />
      )}
      <Select
        label="Type"
        name="type_filter"
        value={type}
        onChange={choose}
        options={[{ value: '', label: 'all' }, ...TYPES.map((one) => ({ value: one, label: one }))]}
      />
      {!list && <Waiting error={error} />}
      {list?.data.length === 0 && <p class="faint">No records match.</p>}
      {list && list.data.length > 0 && (
        <RecordTable zone={zone} records={list.data} mayChange={mayChange} edit={setEdited} done={done} />
      )}
      {list && <Paging cursor={cursor} next={list.next_cursor} go={setCursor} />}
    </Section>
  );
}

interface TableProps {
  zone: ZoneData;
  records: readonly DnsRecord[];
  mayChange: boolean;
  edit(record: DnsRecord): void;
  done(): Promise<void>;
}

function RecordTable({ zone, records, mayChange, edit, done }: TableProps) {
  return (
    <Table label="Records" head={['Name', 'Type', 'Value', 'TTL', 'Comment', '']}>
      {records.map((record) => (
        <tr key={record.id}>
          <th scope="row">
            <span>{record.name}</span>
          </th>
          <td>{record.type}</td>
          <td>
            <Clip code text={valueOf(record)} />
          </td>
          <td>{record.ttl ?? <span class="faint">{zone.default_ttl}</span>}</td>
          <td>{record.comment ?? (record.managed_by ? `of the ${kindWords(record.managed_by.type)}` : '–')}</td>
          <td>{mayChange && <Actions zone={zone} record={record} edit={edit} done={done} />}</td>
        </tr>
      ))}
    </Table>
  );
}

/** As zone files have it (RFC 1035 §5.1). */
function valueOf({ type, priority, weight, port, flags, tag, value }: DnsRecord): string {
  const before = { MX: [priority], SRV: [priority, weight, port], CAA: [flags, tag] }[type as string] ?? [];
  return [...before, value].join(' ');
}

interface ActionsProps extends Omit<TableProps, 'records' | 'mayChange'> {
  record: DnsRecord;
}

function Actions({ zone, record, edit, done }: ActionsProps) {
  const [asks, setAsks] = useState(false);
  const what = `${record.type} of ${record.name}`;
  if (record.is_protected || record.managed_by) return <span class="faint">kept by the platform</span>;
  const remove = async (): Promise<void> => {
    await request(DELETE, { id: zone.id, record_id: record.id });
    await done();
  };
  const undo = async (): Promise<void> => {
    const change = { projectId: zone.project_id, resourceId: record.id, action: 'dns_record.deleted' };
    await revertChange(change);
    await done();
  };
  return (
    <>
      <button type="button" class="quiet small" onClick={() => edit(record)}>
        Edit<span class="off-screen"> {what}</span>
      </button>{' '}
      <button type="button" class="quiet small" onClick={() => setAsks(true)}>
        Delete<span class="off-screen"> {what}</span>
      </button>
      {asks && (
        <Confirm
          title={`Delete the record ${what}?`}
          verb="Delete"
          work={remove}
          done={`The record ${what} was deleted.`}
          undo={undo}
          onClose={() => setAsks(false)}
        >
          {record.fqdn} no longer has the value {valueOf(record)}. Resolvers keep it for up to{' '}
          {record.ttl ?? zone.default_ttl} seconds. {reversalText('activity', zone.project_id)}
        </Confirm>
      )}
    </>
  );
}
