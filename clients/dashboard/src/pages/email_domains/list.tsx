// Domains from which the applications of a project send mail.
import { request } from '../../api/client';
import { graphql } from '../../api/graphql';
import { useAction } from '../../api/use_query';
import { Field, Select, useFields } from '../../parts/form';
import { Status } from '../../parts/status';
import { Ago } from '../../parts/time';
import { navigate } from '../../router';
import { NewSection, ProjectList } from '../project_list';
import { projectFlag } from '../../parts/command';

const DOMAINS = graphql(`
  query EmailDomains($id: ID!, $cursor: String) {
    listEmailDomains(project_id: $id, limit: 50, cursor: $cursor, sort: "name") {
      data {
        id
        name
        status
        status_reason
        dns
        last_checked_at
      }
      next_cursor
    }
  }
`);
const CREATE = graphql(`
  mutation CreateEmailDomain($project_id: ID!, $input: CreateEmailDomainInput!) {
    createEmailDomain(project_id: $project_id, input: $input) {
      id
    }
  }
`);
const DELETE = graphql(`
  mutation DeleteListedEmailDomain($id: ID!) {
    deleteEmailDomain(id: $id)
  }
`);

const MODES = [
  { value: 'automatic', label: 'set by the platform, if it has the zone' },
  { value: 'manual', label: 'set by me' },
] as const;

export function EmailDomains({ id }: { id: string }) {
  return (
    <ProjectList
      id={id}
      title="Email domains"
      query={DOMAINS}
      listOf={({ listEmailDomains }) => listEmailDomains}
      command={`svc api listEmailDomains${projectFlag(id)}`}
      empty={{
        title: 'No email domains yet',
        text: 'Mail is sent from addresses of a domain whose records say that the platform may send it.',
        command: `svc api createEmailDomain --field name=example.com${projectFlag(id)}`,
      }}
      hrefOf={({ id: one }) => `/email_domains/${one}`}
      columns={() => ({
        Status: ({ status, status_reason }) => <Status value={status} title={status_reason} />,
        Records: ({ dns }) => MODES.find(({ value }) => value === dns)?.label,
        Checked: ({ last_checked_at }) => <Ago time={last_checked_at} />,
      })}
      deletion={{
        kind: 'domain',
        consequence: 'Mail from its addresses is refused. Its signing key goes with it.',
        remove: (one) => request(DELETE, { id: one }),
      }}
    >
      <Create projectId={id} />
    </ProjectList>
  );
}

function Create({ projectId }: { projectId: string }) {
  const fields = useFields({ name: '', dns: 'automatic' });
  const action = useAction(async () => {
    const { name, dns } = fields.values;
    const input = { name: name.trim(), dns: dns as (typeof MODES)[number]['value'] };
    const { createEmailDomain } = await request(CREATE, { project_id: projectId, input });
    navigate(`/email_domains/${createEmailDomain.id}`);
  });
  return (
    <NewSection title="New domain" verb="Add the domain" action={action} fields={['name', 'dns']}>
      <Field label="Domain" {...fields.of('name', action)} required placeholder="example.com" />
      <Select label="Records" {...fields.of('dns', action)} options={MODES} onChange={(dns) => fields.set({ dns })} />
    </NewSection>
  );
}
