/** Of `record` and `top`: a few seconds have to show something. Agents that run for good take 20 by default. */
export const RECORD_FREQUENCY = '97';
export const RECORD_FREQUENCY_HELP =
  'samples a second on each CPU; agents that run for good take 20, short recordings need more';
