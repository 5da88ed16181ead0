// The DNS zones of a project.
import { request } from '../../api/client';
import { graphql } from '../../api/graphql';
import { useAction } from '../../api/use_query';
import { Field, useFields } from '../../parts/form';
import { Status } from '../../parts/status';
import { navigate } from '../../router';
import { NewSection, ProjectList } from '../project_list';
import { projectFlag } from '../../parts/command';

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
const DELETE = graphql(`
  mutation DeleteListedZone($id: ID!) {
    deleteDnsZone(id: $id)
  }
`);

export function DnsZones({ id }: { id: string }) {
  return (
    <ProjectList
      id={id}
      title="DNS"
      query={ZONES}
      listOf={({ listDnsZones }) => listDnsZones}
      command={`svc api listDnsZones${projectFlag(id)}`}
      empty={{
        title: 'No zones yet',
        text:
          'A zone has the records of a domain. The name servers of the platform answer them once the registrar of ' +
          'the domain delegates to them.',
        command: `svc api createDnsZone --field name=example.com${projectFlag(id)}`,
      }}
      hrefOf={({ id: one }) => `/dns/${one}`}
      columns={() => ({
        Status: ({ status, status_reason }) => <Status value={status} title={status_reason} />,
        Delegation: ({ delegation }) => <Status value={delegation.state} />,
        Records: ({ record_count }) => record_count.toLocaleString('en'),
      })}
      deletion={{
        kind: 'zone',
        consequence: 'Its records go with it, and its name servers no longer answer for the domain.',
        remove: (one) => request(DELETE, { id: one }),
      }}
    >
      <Create projectId={id} />
    </ProjectList>
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
    <NewSection title="New zone" verb="Create zone" action={action} fields={['name']}>
      <Field label="Domain" {...fields.of('name', action)} required placeholder="example.com" />
    </NewSection>
  );
}
