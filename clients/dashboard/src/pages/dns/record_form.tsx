// One record, added or changed. Fields follow its type.
import { request } from '../../api/client';
import { graphql, type VariablesOf } from '../../api/graphql';
import { useAction } from '../../api/use_query';
import { useOpened } from '../../parts/focus';
import { Field, Form, Problem, Select, Submit, useFields } from '../../parts/form';
import type { DnsRecord } from './records';
import type { ZoneData } from './zone';

const CREATE = graphql(`
  mutation CreateRecord($id: ID!, $input: CreateDnsRecordInput!) {
    createDnsRecord(id: $id, input: $input) {
      id
    }
  }
`);
const UPDATE = graphql(`
  mutation UpdateRecord($id: ID!, $record_id: ID!, $input: UpdateDnsRecordInput!) {
    updateDnsRecord(id: $id, record_id: $record_id, input: $input) {
      id
    }
  }
`);

export type DnsType = VariablesOf<typeof CREATE>['input']['type'];

/** Numbers that a type has beside its value. */
const NUMBERS: Partial<Record<DnsType, readonly ('priority' | 'weight' | 'port' | 'flags')[]>> = {
  MX: ['priority'],
  SRV: ['priority', 'weight', 'port'],
  CAA: ['flags'],
};
const LABELS = { priority: 'Priority', weight: 'Weight', port: 'Port', flags: 'Flags' };
const VALUES: Record<DnsType, string> = {
  A: '192.0.2.10',
  AAAA: '2001:db8::10',
  ALIAS: 'shop.example.net',
  CAA: 'letsencrypt.org',
  CNAME: 'shop.example.net',
  DS: '12345 13 2 49FD46E6C4B45C55D4AC…',
  HTTPS: '1 . alpn=h3,h2',
  LOC: '52 22 23.000 N 4 53 32.000 E 2.00m',
  MX: 'mail.example.net',
  NAPTR: '100 10 "s" "SIP+D2U" "" _sip._udp.example.net',
  NS: 'ns1.example.net',
  PTR: 'host.example.net',
  SRV: 'sip.example.net',
  SSHFP: '4 2 1F3A9C…',
  SVCB: '1 dns.example.net alpn=dot port=853',
  TLSA: '3 1 1 A1B2C3…',
  TXT: 'v=spf1 -all',
};
export const TYPES = Object.keys(VALUES) as DnsType[];
const TAGS = ['issue', 'issuewild', 'iodef'].map((value) => ({ value, label: value }));

interface RecordFormProps {
  zone: ZoneData;
  record: DnsRecord | null;
  done(): Promise<void>;
  onClose(): void;
}

export function RecordForm({ zone, record, done, onClose }: RecordFormProps) {
  const fields = useFields(textsOf(record));
  const opened = useOpened();
  const type = fields.values.type as DnsType;
  const action = useAction(async () => {
    const { type: given, ...input } = inputOf(fields.values);
    if (record) await request(UPDATE, { id: zone.id, record_id: record.id, input });
    else await request(CREATE, { id: zone.id, input: { ...input, type: given } });
    await done();
  });
  return (
    <article ref={opened} aria-label={record ? 'Change a record' : 'New record'}>
      <Form action={action}>
        <div class="columns">
          <Select
            label="Record type"
            {...fields.of('type', action)}
            options={TYPES.map((value) => ({ value, label: value, disabled: record !== null && value !== type }))}
            onChange={(value) => fields.set({ type: value })}
          />
          <Field
            label="Name"
            {...fields.of('name', action)}
            required
            hint={`Below ${zone.name}; @ is the zone itself.`}
          />
          <Field label="Value" {...fields.of('value', action)} required placeholder={VALUES[type]} />
          {(NUMBERS[type] ?? []).map((name) => (
            <Field key={name} label={LABELS[name]} {...fields.of(name, action)} type="number" required min={0} />
          ))}
          {type === 'CAA' && (
            <Select label="Tag" {...fields.of('tag', action)} options={TAGS} onChange={(tag) => fields.set({ tag })} />
          )}
          <Field
            label="TTL"
            {...fields.of('ttl', action)}
            type="number"
            min={1}
            placeholder={String(zone.default_ttl)}
          />
          <Field label="Comment" {...fields.of('comment', action)} maxLength={100} />
        </div>
        <Problem error={action.error} fields={Object.keys(fields.values)} />
        <footer class="actions">
          <button type="button" class="quiet" onClick={onClose}>
            Cancel
          </button>
          <Submit action={action}>{record ? 'Save the record' : 'Add the record'}</Submit>
        </footer>
      </Form>
    </article>
  );
}

function textsOf(record: DnsRecord | null) {
  const number = (value: number | null | undefined, usual: string): string => (value == null ? usual : String(value));
  return {
    type: String(record?.type ?? 'A'),
    name: record?.name ?? '@',
    value: record?.value ?? '',
    ttl: number(record?.ttl, ''),
    priority: number(record?.priority, '10'),
    weight: number(record?.weight, '0'),
    port: number(record?.port, '443'),
    flags: number(record?.flags, '0'),
    tag: String(record?.tag ?? 'issue'),
    comment: record?.comment ?? '',
  };
}

function inputOf(texts: ReturnType<typeof textsOf>) {
  const type = texts.type as DnsType;
  const numbers = Object.fromEntries((NUMBERS[type] ?? []).map((name) => [name, Number(texts[name])]));
  const rest = { ttl: texts.ttl ? Number(texts.ttl) : null, comment: texts.comment || null };
  const tag = type === 'CAA' ? { tag: texts.tag as 'issue' } : {};
  return { type, name: texts.name, value: texts.value, ...rest, ...numbers, ...tag };
}
