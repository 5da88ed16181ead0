// Pages of everything that the API has, made of its SDL: which page an address means.
import { useEffect, useState } from 'preact/hooks';
import { ApiError, UNREACHABLE } from '../../api/client';
import { hrefOf, placeOf, type ResourceTable } from '../../api/resources/table';
import { pageProject } from '../../keyboard';
import { Page, Waiting } from '../../parts/page';
import { address, decodePart } from '../../router';
import { pages } from '..';
import { AllResources } from './all';
import { DocumentPage } from './document';
import './generic.css';
import { ListPage } from './list';
import { OperationPage } from './operation';

const loaded: { table?: ResourceTable } = {};

/** @param id of the project; left out for what belongs to none. @param rest path behind `resources/` */
export function Resources({ id, rest }: { id?: string; rest: string }) {
  const [table, setTable] = useState(loaded.table);
  const [error, setError] = useState<ApiError | null>(null);
  useEffect(() => {
    if (table) return;
    import('#resources').then(
      ({ default: found }) => {
        loaded.table = found;
        setTable(found);
      },
      () => setError(new ApiError('unreachable', 0, UNREACHABLE)),
    );
  }, []);
  useEffect(() => void (pageProject.value = id), [id]);
  if (!table)
    return (
      <Page title="Resources" projectId={id}>
        <Waiting error={error} />
      </Page>
    );
  return <Found table={table} projectId={id} rest={rest} />;
}

function Found({ table, projectId, rest }: { table: ResourceTable; projectId: string | undefined; rest: string }) {
  const patterns = pages.map(([pattern]) => pattern);
  if (!rest) return <AllResources table={table} projectId={projectId} patterns={patterns} />;
  const place = placeOf(table, projectId, rest.split('/').map(decodePart));
  if (!place) return <NoPage projectId={projectId} />;
  const around = { table, place, patterns };
  const wanted = address.value.query.get('do');
  const operation = wanted && place.page.operations.includes(wanted) ? table.operations[wanted] : undefined;
  const key = hrefOf(place.key, place.projectId, place.ids);
  if (operation) return <OperationPage key={`${key} ${operation.name}`} around={around} operation={operation} />;
  return place.page.isList ? <ListPage key={key} around={around} /> : <DocumentPage key={key} around={around} />;
}

function NoPage({ projectId }: { projectId: string | undefined }) {
  return (
    <Page title="Page not found" projectId={projectId}>
      <p>The API has nothing at this path.</p>
    </Page>
  );
}
