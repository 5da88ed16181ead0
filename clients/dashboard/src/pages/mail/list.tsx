// Domains from which the applications of a project send mail.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql } from '../../api/graphql';
import { useAction, useQuery } from '../../api/use_query';
import { Field, Form, Problem, Select, Submit, useFields } from '../../parts/form';
import { Empty, Page, Section, Table, Waiting } from '../../parts/page';
import { Paging } from '../../parts/paging';
import { Status } from '../../parts/status';
import { Ago } from '../../parts/time';
import { navigate } from '../../router';
import { mayActAs } from '../../session';
import { projectTabs } from '../project';

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

const MODES = [
  { value: 'automatic', label: 'set by the platform, if it has the zone' },
  { value: 'manual', label: 'set by me' },
] as const;

export function EmailDomains({ id }: { id: string }) {
  const [cursor, setCursor] = useState<string | null>(null);
  const { data, error } = useQuery(DOMAINS, { id, cursor });
  const list = data?.listEmailDomains;
  return (
    <Page title="Mail" tabs={projectTabs(id)} projectId={id} command="svc api listEmailDomains">
      {!list && <Waiting error={error} />}
      {list?.data.length === 0 && (
        <Empty title="No domain for mail yet" command="svc api createEmailDomain -f name=example.com">
          Mail is sent from addresses of a domain whose records say that the platform may send it.
        </Empty>
      )}
      {list && list.data.length > 0 && (
        <Table label="Domains for mail" head={['Name', 'Status', 'Records', 'Checked']}>
          {list.data.map((domain) => (
            <tr key={domain.id}>
              <th scope="row">
                <a href={`/mail_domains/${domain.id}`}>{domain.name}</a>
              </th>
              <td>
                <Status value={domain.status} title={domain.status_reason} />
              </td>
              <td>{MODES.find(({ value }) => value === domain.dns)?.label}</td>
              <td>
                <Ago time={domain.last_checked_at} />
              </td>
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
  const fields = useFields({ name: '', dns: 'automatic' });
  const action = useAction(async () => {
    const { name, dns } = fields.values;
    const input = { name: name.trim(), dns: dns as (typeof MODES)[number]['value'] };
    const { createEmailDomain } = await request(CREATE, { project_id: projectId, input });
    navigate(`/mail_domains/${createEmailDomain.id}`);
  });
  return (
    <Section title="New domain">
      <Form action={action}>
        <div class="columns">
          <Field label="Domain" {...fields.of('name', action)} required placeholder="example.com" />
          <Select
            label="Records"
            {...fields.of('dns', action)}
            options={MODES}
            onChange={(dns) => fields.set({ dns })}
          />
        </div>
        <Problem error={action.error} fields={['name', 'dns']} />
        <footer class="actions">
          <Submit action={action}>Add the domain</Submit>
        </footer>
      </Form>
    </Section>
  );
}
