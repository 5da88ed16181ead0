// Sites that are built and served as a deployment would.
import { openWorkshop, type Built } from '../runner/built';
import { getAsWritten, type AnswerAsSent } from '../object_storage/get_as_written';

export type Get = (target: string, headers?: Record<string, string>, method?: string) => Promise<AnswerAsSent>;

export function openStaticSites() {
  const workshop = openWorkshop();
  const serve = async (built: Built): Promise<Get> => {
    const { url } = await workshop.start(built);
    return (target, headers, method) => getAsWritten(url + target, headers, method);
  };
  return {
    workshop,
    serve,
    serveFiles: async (files: Record<string, string | object>): Promise<Get> =>
      serve(await workshop.build(workshop.source(files))),
  };
}

/** Status and text, for `toEqual`. */
export function summaryOf({ status, body }: AnswerAsSent): [status: number, text: string] {
  return [status, body.toString()];
}
