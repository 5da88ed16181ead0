// Values of parameters that several providers have.

/** Rows of one page. */
export function pageOf<Row>(rows: Row[], query: URLSearchParams, size: string): Row[] {
  const [per, page] = [Number(query.get(size) ?? 30), Number(query.get('page') ?? 1)];
  return rows.slice((page - 1) * per, page * per);
}

export const NUMBER = /^[1-9]\d*$/;
export const PER_PAGE = /^([1-9]\d?|100)$/;
export const TEXT = /^[^]*$/;
