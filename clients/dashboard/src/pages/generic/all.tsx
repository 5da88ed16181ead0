// "All resources": every kind of thing that a project, or the account, has.
import { hrefOf, type ResourcePage, type ResourceTable } from '../../api/resources/table';
import { Page, Section } from '../../parts/page';
import { handMade } from './links';
import { Prose } from './prose';
import { pageTitle, purposeOf } from './words';

interface AllProps {
  table: ResourceTable;
  projectId: string | undefined;
  patterns: readonly string[];
}

export function AllResources({ table, projectId, patterns }: AllProps) {
  const scope = projectId ? 'project' : 'account';
  const groups = new Map<string, [key: string, page: ResourcePage][]>();
  for (const [key, page] of Object.entries(table.pages)) {
    if (page.scope !== scope || key.includes('{}')) continue;
    groups.set(page.group, [...(groups.get(page.group) ?? []), [key, page]]);
  }
  return (
    <Page title="All resources" projectId={projectId} command="svc api --list">
      <p>
        {projectId
          ? 'Everything that this project can have.'
          : 'What belongs to no project: catalogs, and your access.'}{' '}
        {projectId && <a href="/resources">Catalogs and account</a>}
      </p>
      <div class="groups">
        {[...groups].sort().map(([group, found]) => (
          <Section key={group} title={group}>
            <ul class="kinds">
              {found.map(([key, page]) => (
                <Kind key={key} table={table} name={key} page={page} projectId={projectId} patterns={patterns} />
              ))}
            </ul>
          </Section>
        ))}
      </div>
    </Page>
  );
}

interface KindProps extends AllProps {
  name: string;
  page: ResourcePage;
}

function Kind({ table, name, page, projectId, patterns }: KindProps) {
  const generic = hrefOf(name, projectId, []);
  const own = handMade(name, projectId, [], patterns);
  const title = name === 'project' ? 'This project' : pageTitle(name);
  const read = table.operations[page.read];
  return (
    <li>
      <a href={own ?? generic}>{title}</a>
      {own && (
        <small>
          {' '}
          <a href={generic}>
            every field<span class="off-screen"> of {title}</span>
          </a>
        </small>
      )}
      {read && (
        <small class="faint">
          <Prose text={purposeOf(read)} />
        </small>
      )}
    </li>
  );
}
