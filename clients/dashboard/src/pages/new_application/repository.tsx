// Chooses a repository and a branch: of a connected Git host, of a shared repository, or by its address.
import { useState } from 'preact/hooks';
import { graphql } from '../../api/graphql';
import { useQuery, type Action } from '../../api/use_query';
import { Field, Select, type useFields } from '../../parts/form';
import { Waiting } from '../../parts/page';

const HOSTS = graphql(`
  query GitHosts($project_id: ID!) {
    listGitIntegrations(project_id: $project_id, limit: 100, status: active) {
      data {
        id
        name
        provider
      }
    }
    listSharedRepositories(project_id: $project_id, limit: 100, status: active) {
      data {
        id
        name
        url
        default_branch
      }
    }
  }
`);
const REPOSITORIES = graphql(`
  query Repositories($id: ID!, $search: String) {
    listGitRepositories(id: $id, limit: 50, search: $search) {
      data {
        id
        full_name
        default_branch
        private
      }
      next_cursor
    }
  }
`);
const BRANCHES = graphql(`
  query Branches($id: ID!, $repository_id: ID!) {
    listGitBranches(id: $id, repository_id: $repository_id, limit: 100) {
      data {
        name
      }
    }
  }
`);
const SHARED_BRANCHES = graphql(`
  query SharedBranches($id: ID!, $project_id: ID!) {
    listSharedRepositoryBranches(id: $id, project_id: $project_id, limit: 100) {
      data {
        name
      }
    }
  }
`);

/** `host` is the id of an integration or of a shared repository; empty: the address says it. */
export interface RepositoryValues extends Record<string, string> {
  host: string;
  repository_url: string;
  repository_id: string;
  branch: string;
}

interface RepositoryProps {
  projectId: string;
  fields: Pick<ReturnType<typeof useFields<RepositoryValues>>, 'values' | 'set' | 'of'>;
  action: Action<void>;
  /** A name for the application. */
  suggest(text: string): void;
}

export function Repository({ projectId, fields, action, suggest }: RepositoryProps) {
  const { data } = useQuery(HOSTS, { project_id: projectId });
  const integrations = data?.listGitIntegrations.data ?? [];
  const shared = data?.listSharedRepositories.data ?? [];
  const { host } = fields.values;
  const choose = (id: string): void => {
    const one = shared.find((repository) => repository.id === id);
    fields.set({ host: id, repository_id: '', branch: one?.default_branch ?? '' });
    if (one) suggest(one.url);
  };
  return (
    <>
      {integrations.length + shared.length > 0 && (
        <Select
          label="Where it is"
          name="host"
          value={host}
          onChange={choose}
          options={[
            { value: '', label: 'At an address' },
            ...integrations.map(({ id, name, provider }) => ({ value: id, label: `${name} (${provider})` })),
            ...shared.map(({ id, name }) => ({ value: id, label: `Shared repository ${name}` })),
          ]}
        />
      )}
      {!host && <ByAddress {...{ fields, action, suggest, projectId }} />}
      {integrations.some(({ id }) => id === host) && <OfHost key={host} {...{ fields, action, suggest }} />}
      {shared.some(({ id }) => id === host) && <SharedBranch key={host} {...{ projectId, fields, action }} />}
    </>
  );
}

function ByAddress({ projectId, fields, action, suggest }: RepositoryProps) {
  return (
    <div class="columns">
      <Field
        label="Repository URL"
        {...fields.of('repository_url', action)}
        required
        placeholder="https://git.example.com/acme/shop.git"
        hint={
          <>
            With https or ssh. For private repositories,{' '}
            <a href={`/projects/${projectId}/resources/git_integrations`}>connect a Git host</a>.
          </>
        }
        onBlur={() => suggest(fields.values.repository_url)}
      />
      <Field label="Branch" {...fields.of('branch', action)} placeholder="default branch" />
    </div>
  );
}

function OfHost({ fields, action, suggest }: Omit<RepositoryProps, 'projectId'>) {
  const { host, repository_id } = fields.values;
  const [search, setSearch] = useState('');
  const { data, error } = useQuery(REPOSITORIES, { id: host, search: search.trim() || null });
  const found = data?.listGitRepositories;
  const choose = (id: string): void => {
    const one = found?.data.find((repository) => repository.id === id);
    fields.set({ repository_id: id, branch: one?.default_branch ?? '' });
    if (one) suggest(one.full_name);
  };
  return (
    <>
      <Field
        label="Search for a repository"
        name="search"
        type="search"
        value={search}
        autocomplete="off"
        onInput={(event) => setSearch(event.currentTarget.value)}
      />
      {!found && <Waiting error={error} rows={2} />}
      {found?.data.length === 0 && <p class="faint">No repository has such a name.</p>}
      {found && (
        <ul class="repositories" aria-label="Repositories">
          {found.data.map(({ id, full_name, private: isPrivate }) => (
            <li key={id}>
              <label>
                <input
                  type="radio"
                  name="repository_id"
                  required
                  checked={repository_id === id}
                  onChange={() => choose(id)}
                />
                <span>{full_name}</span>
                {isPrivate && <small class="faint">private</small>}
              </label>
            </li>
          ))}
        </ul>
      )}
      {found?.next_cursor && <p class="faint">There are more: search for a part of the name.</p>}
      {repository_id && <HostBranch key={repository_id} {...{ fields, action }} />}
    </>
  );
}

function HostBranch({ fields, action }: Pick<RepositoryProps, 'fields' | 'action'>) {
  const { host, repository_id } = fields.values;
  const { data } = useQuery(BRANCHES, { id: host, repository_id });
  return <Branch {...{ fields, action }} names={data?.listGitBranches.data.map(({ name }) => name) ?? []} />;
}

function SharedBranch({ projectId, fields, action }: Omit<RepositoryProps, 'suggest'>) {
  const { data } = useQuery(SHARED_BRANCHES, { id: fields.values.host, project_id: projectId });
  return (
    <Branch {...{ fields, action }} names={data?.listSharedRepositoryBranches.data.map(({ name }) => name) ?? []} />
  );
}

/** With the branches that are known as suggestions: there may be more, and the host may not answer. */
function Branch({ fields, action, names }: Pick<RepositoryProps, 'fields' | 'action'> & { names: string[] }) {
  return (
    <>
      <Field label="Branch" {...fields.of('branch', action)} list="branches" placeholder="default branch" />
      <datalist id="branches">
        {names.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </>
  );
}
