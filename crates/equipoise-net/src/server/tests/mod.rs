mod refusals;
mod thousand;
