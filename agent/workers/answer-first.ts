/** Other requests to the thread wait meanwhile. */
const MAX_BATCH_MS = 200;

/** Answers the first ones of a request of `RequestBatches`: one at least, and as many as there is time for. */
export async function answerFirst<Request, Answer>(
  requests: readonly Request[],
  answer: (request: Request) => Answer | Promise<Answer>,
): Promise<Answer[]> {
  const end = performance.now() + MAX_BATCH_MS;
  const answers: Answer[] = [];
  for (const request of requests) {
    answers.push(await answer(request));
    if (performance.now() > end) break;
  }
  return answers;
}
