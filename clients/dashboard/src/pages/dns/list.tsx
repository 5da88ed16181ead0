// The DNS zones of a project.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql } from '../../api/graphql';
import { useAction, useQuery } from '../../api/use_query';
import { Field, Form, Problem, Submit, useFields } from '../../parts/form';
import { Empty, Page, Section, Table, Waiting } from '../../parts/page';
import { Paging } from '../../parts/paging';
import { Status } from '../../parts/status';
import { navigate } from '../../router';
import { mayActAs } from '../../session';
import { projectTabs } from '../project';

const ZONES = graphql(`
  query DnsZones($id: ID!, $cursor: String) {
    listDnsZones(project_id: $id, limit: 50, cursor: $cursor, sort: "name") {
      data {
        id
        name
        status
        status_reason
        record_count
        delegation {
          state
        }
      }
      next_cursor
    }
  }
`);
const CREATE = graphql(`
  mutation CreateZone($project_id: ID!, $input: CreateDnsZoneInput!) {
    createDnsZone(project_id: $project_id, input: $input) {
      id
    }
  }
`);

export function DnsZones({ id }: { id: string }) {
  const [cursor, setCursor] = useState<string | null>(null);
  const { data, error } = useQuery(ZONES, { id, cursor });
  const list = data?.listDnsZones;
  return (
    <Page title="DNS" tabs={projectTabs(id)} projectId={id} command="svc api listDnsZones">
      {!list && <Waiting error={error} />}
      {list?.data.length === 0 && (
        <Empty title="No zone yet" command="svc api createDnsZone -f name=example.com">
          A zone has the records of a domain. The name servers of the platform answer them once the registrar of the
          domain delegates to them.
        </Empty>
      )}
      {list && list.data.length > 0 && (
        <Table label="Zones" head={['Name', 'Status', 'Delegation', 'Records']}>
          {list.data.map((zone) => (
            <tr key={zone.id}>
              <th scope="row">
                <a href={`/dns/${zone.id}`}>{zone.name}</a>
              </th>
              <td>
                <Status value={zone.status} title={zone.status_reason} />
              </td>
              <td>
                <Status value={zone.delegation.state} />
              </td>
              <td>{zone.record_count}</td>
            </tr>
          ))}
        </Table>
      )}
      {list && <Paging cursor={cursor} next={list.next_cursor} go={setCursor} />}
      {mayActAs('developer', id) && <Create projectId={id} />}
    </Page>
  );
}

function Create({ projectId }: { projectId: string }) {
  const fields = useFields({ name: '' });
  const action = useAction(async () => {
    const input = { name: fields.values.name.trim() };
    const { createDnsZone } = await request(CREATE, { project_id: projectId, input });
    navigate(`/dns/${createDnsZone.id}`);
  });
  return (
    <Section title="New zone">
      <Form action={action} class="inline form-line">
        <Field label="Domain" {...fields.of('name', action)} required placeholder="example.com" />
        <Submit action={action}>Create zone</Submit>
        <Problem error={action.error} fields={['name']} />
      </Form>
    </Section>
  );
}
